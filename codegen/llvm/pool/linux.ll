; What the pool asks of Linux and of its C library. Another system has the same functions in a file of its own: those that
; `waiting.ll` and `placement.ll` name, and the C library's, declared, or defined where it has none.

%timespec = type { i64, i64 }

declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
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
  %time = alloca %timespec, align 8
  %ignored = call i32 @clock_gettime(i32 $monotonic, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

; Sleep as long as the low half of the counter at %at is %seen; %sleepers tells others that somebody does.
define internal void @sleep(ptr %at, i32 %seen, ptr %sleepers) nounwind {
  %old = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %result = call i64 (i64, ...) @syscall(i64 $futex, ptr %at, i32 128, i32 %seen, ptr null, ptr null, i32 0)
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
  %ignored = call i64 (i64, ...) @syscall(i64 $futex, ptr %at, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  br label %done
done:
  ret void
}

; Processor + 1 of this thread; 0 if it is unknown.
define internal i32 @here() nounwind {
  %cpu = call i32 @sched_getcpu()
  %known = icmp ult i32 %cpu, $cpus
  %place = add i32 %cpu, 1
  %result = select i1 %known, i32 %place, i32 0
  ret i32 %result
}

; Moves this thread to a processor outside of a set, if it may run on one.
define internal void @avoid(ptr %set) nounwind {
entry:
  %allowed = alloca [$cpu_words x i64], align 8
  %failed = call i32 @sched_getaffinity(i32 0, i64 $cpu_bytes, ptr %allowed)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %each, label %done
each:
  %i = phi i64 [ 0, %entry ], [ %i.next, %each ]
  %any = phi i64 [ 0, %entry ], [ %any.next, %each ]
  %set.at = getelementptr i64, ptr %set, i64 %i
  %allowed.at = getelementptr i64, ptr %allowed, i64 %i
  %used = load i64, ptr %set.at, align 8
  %unused = xor i64 %used, -1
  %may = load i64, ptr %allowed.at, align 8
  %left = and i64 %may, %unused
  store i64 %left, ptr %set.at, align 8
  %any.next = or i64 %any, %left
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, $cpu_words
  br i1 %more, label %each, label %summed
summed:
  %none = icmp eq i64 %any.next, 0
  br i1 %none, label %done, label %move
move:
  %moved = call i32 @sched_setaffinity(i32 0, i64 $cpu_bytes, ptr %set)
  %released = call i32 @sched_setaffinity(i32 0, i64 $cpu_bytes, ptr %allowed)
  br label %done
done:
  ret void
}
