"""MLflow's `spark_udf`: the saved model as a function of a column."""

import os
import sys
from pathlib import Path

import mlflow.pyfunc
import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

if __name__ == "__main__":
    library, folder = sys.argv[1], Path(sys.argv[2])
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers
    mlflow.pyfunc.save_model(folder, loader_module="runtime.predictor", data_path=library, pip_requirements=["numpy"])
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    outputs = StructType([StructField("probabilities", ArrayType(FloatType()))])
    read = mlflow.pyfunc.spark_udf(spark, str(folder), result_type=outputs, env_manager="local")
    seven = np.load("examples/digits/seven.npy").reshape(64).tolist()
    table = spark.createDataFrame([(k, seven) for k in range(50)], ["id", "image"])
    rows = table.withColumn("found", read("image")).select("id", "found.probabilities").collect()
    print(len({row.id for row in rows}), {int(np.argmax(row.probabilities)) for row in rows})
    spark.stop()
