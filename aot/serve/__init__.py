"""Compiled models at an endpoint: the Open Inference Protocol (KServe v2) over HTTP and gRPC.

clients -> http | rpc -> protocol -> repository -> served: queue, batches -> runtime

`aot.serve.server.Server` runs in a program of one's own; its packages are those of the extra `serve`.
"""
