; What the pool asks of macOS: see `linux.ll`. Nobody may choose the processor of a thread, so places are unknown.

declare i64 @clock_gettime_nsec_np(i32)
declare i32 @os_sync_wait_on_address(ptr, i64, i64, i32)
declare i32 @os_sync_wake_by_address_all(ptr, i64, i32)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @memset(ptr, i32, i64)
declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)

; Nanoseconds of a clock that nobody sets.
define hidden i64 @now() nounwind noinline {
  %now = call i64 @clock_gettime_nsec_np(i32 $monotonic)
  ret i64 %now
}

; Sleep as long as the low half of the counter at %at is %seen; %sleepers tells others that somebody does.
define internal void @sleep(ptr %at, i32 %seen, ptr %sleepers) nounwind {
  %wide = zext i32 %seen to i64
  %old = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %result = call i32 @os_sync_wait_on_address(ptr %at, i64 %wide, i64 4, i32 0)
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
  %ignored = call i32 @os_sync_wake_by_address_all(ptr %at, i64 4, i32 0)
  br label %done
done:
  ret void
}

define internal i32 @here() nounwind {
  ret i32 0
}

define internal void @avoid(ptr %set) nounwind {
  ret void
}
