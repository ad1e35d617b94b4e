"""MLflow: a `pyfunc` model whose data is the library; `spark_udf`, the registry and REST come with it."""

import sys
from pathlib import Path

import mlflow.pyfunc
import numpy as np
import pandas as pd

if __name__ == "__main__":
    library, folder = sys.argv[1], Path(sys.argv[2])
    mlflow.pyfunc.save_model(folder, loader_module="runtime.predictor", data_path=library, pip_requirements=["numpy"])
    model = mlflow.pyfunc.load_model(str(folder))
    seven = np.load("examples/digits/seven.npy").reshape(64)
    found = model.predict(pd.DataFrame({"image": [seven] * 10}))
    print(found["probabilities"].argmax(axis=1).tolist())
