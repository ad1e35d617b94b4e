"""Ours against OpenVINO and ONNX Runtime, in one interleaved run: `python -m benchmarks MODELS...`.

folder of a model --compile--> m.so
                      |
      ours   openvino   onnxruntime   peak      a pinned process each, see worker.py
        \\        |          |         /
         round 1, round 2, ...                   one works, the others wait, see rounds.py
                      |
           ratios, table, JSON, plot             see report.py
"""
