; What the drivers of a network and the code that all networks share have in common.
%request = type { ptr, ptr, ptr, ptr, ptr, ptr, i64, ptr }  ; runtime.abi.Request
; request, plan, scratch, counters, threads, pool, first call, last call, turn, bytes of scratch a thread
%job = type { ptr, ptr, ptr, ptr, i64, ptr, i64, i64, i64, i64 }
