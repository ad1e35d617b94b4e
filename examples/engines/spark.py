"""Spark: `predict_batch_udf` opens the library once in each Python worker."""

import os
import sys

import numpy as np
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, FloatType

from runtime.predictor import predict_batch

if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the workers
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    seven = np.load("examples/digits/seven.npy").reshape(64).tolist()
    table = spark.createDataFrame([(k, seven) for k in range(500)], ["id", "image"]).repartition(4)
    read = predict_batch_udf(
        predict_batch(sys.argv[1]), return_type=ArrayType(FloatType()), batch_size=128, input_tensor_shapes=[[64]]
    )
    rows = table.withColumn("probabilities", read("image")).select("id", "probabilities").collect()
    print(len({row.id for row in rows}), {int(np.argmax(row.probabilities)) for row in rows})
    spark.stop()
