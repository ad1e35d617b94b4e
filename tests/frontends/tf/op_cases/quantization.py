"""Numbers on a grid."""

import numpy as np
from make_op_cases import Bytes, Known, Numbers, case, quantized

N = Numbers(4)
X = (N.f32(3, 4) * 1.013).astype(np.float32)
LOW, HIGH = Known(-2.3, np.float32), Known(2.7, np.float32)
ROWS = Known([-1.0, -2.0, -3.0, -0.5], np.float32), Known([1.0, 2.5, 3.25, 0.75], np.float32)

CASES = [
    case("FakeQuantWithMinMaxArgs", X),
    case("FakeQuantWithMinMaxArgs", X, min=-2.3, max=2.7, num_bits=4, narrow_range=True),
    case("FakeQuantWithMinMaxVars", X, LOW, HIGH),
    case("FakeQuantWithMinMaxVars", X, LOW, HIGH, num_bits=5, narrow_range=True),
    case("FakeQuantWithMinMaxVars", X, Known(0.0, np.float32), Known(2.0, np.float32)),
    case("FakeQuantWithMinMaxVars", X, np.float32(-1.3), np.float32(2.1)),
    case("FakeQuantWithMinMaxVars", X, Known(0.0, np.float32), Known(0.0, np.float32)),
    case("FakeQuantWithMinMaxVarsPerChannel", X, *ROWS),
    case("FakeQuantWithMinMaxVarsPerChannel", X, *ROWS, num_bits=6),
    *(
        case("QuantizeV2", X, LOW, HIGH, T=quantized(t), mode=mode, round_mode=r)
        for t in (np.uint8, np.int8)
        for mode, r in (
            ("SCALED", "HALF_TO_EVEN"),
            ("SCALED", "HALF_AWAY_FROM_ZERO"),
            ("MIN_FIRST", "HALF_AWAY_FROM_ZERO"),
            ("MIN_COMBINED", "HALF_AWAY_FROM_ZERO"),
        )
    ),
    case("QuantizeV2", X, LOW, HIGH, T=quantized(np.int8), mode="SCALED", narrow_range=True),
    *(
        case(
            "Dequantize", Bytes(N.ints(3, 4, low=0 if t == np.uint8 else -128, high=128, dtype=t)), LOW, HIGH, mode=mode
        )
        for t in (np.uint8, np.int8)
        for mode in ("SCALED", "MIN_FIRST", "MIN_COMBINED")
    ),
    case("QuantizeAndDequantizeV2", X, LOW, HIGH, range_given=True),
    case("QuantizeAndDequantizeV2", X, LOW, HIGH),
    case("QuantizeAndDequantizeV2", X, LOW, HIGH, signed_input=False, range_given=True, round_mode="HALF_UP"),
    case("QuantizeAndDequantizeV2", X, LOW, HIGH, narrow_range=True, range_given=True, num_bits=5),
    case("QuantizeAndDequantizeV3", X, LOW, HIGH, Known(7, np.int32), range_given=True),
    case("QuantizeAndDequantizeV4", X, LOW, HIGH, range_given=True),
]
