; WebAssembly with threads: each is a worker of the host with an instance of the module over the same memory.

; Milliseconds of a clock of this thread.
declare double @clock()
; Sleeps as long as a number in memory is %seen; returns at once in a thread that must not sleep.
declare void @wait(ptr %at, i32 %seen)
; Runs a function in a new thread; 0 if it can.
declare i32 @spawn(ptr %run, ptr %argument)
declare i32 @llvm.wasm.memory.atomic.notify(ptr, i32)

define hidden i64 @now() nounwind {
  %milliseconds = call double @clock()
  %fine = fmul double %milliseconds, 1000000.0
  %now = fptoui double %fine to i64
  ret i64 %now
}

; Sleep as long as the low half of the counter at %at is %seen; %sleepers tells others that somebody does.
define internal void @sleep(ptr %at, i32 %seen, ptr %sleepers) nounwind {
  %old = atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @wait(ptr %at, i32 %seen)
  %old2 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  ret void
}

; After a counter changed, with seq_cst: whoever looked at it before sleeps by now, or will see the change.
define internal void @rouse(ptr %at, ptr %sleepers) nounwind {
entry:
  %count = load atomic i32, ptr %sleepers seq_cst, align 4
  %none = icmp eq i32 %count, 0
  br i1 %none, label %done, label %call
call:
  %woken = call i32 @llvm.wasm.memory.atomic.notify(ptr %at, i32 -1)
  br label %done
done:
  ret void
}

define internal i32 @pthread_create(ptr %thread, ptr %options, ptr %run, ptr %argument) nounwind {
  %failed = call i32 @spawn(ptr %run, ptr %argument)
  ret i32 %failed
}
