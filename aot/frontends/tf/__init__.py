"""Reads TensorFlow files: GraphDef, MetaGraph, SavedModel."""
