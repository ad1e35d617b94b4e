; How threads wait: they spin for as long as waking a sleeper takes, then sleep. Nobody yields: where others want the
; processor too, that gives away several milliseconds.

%timespec = type { i64, i64 }

declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
$pause_declaration

define internal i64 @now() nounwind noinline {
  %time = alloca %timespec, align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr %timespec, ptr %time, i64 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

; Step %count of a wait that began at %begin: whether to go on spinning. The clock is looked at now and then: unlike
; pauses, that takes from a thread on the same core.
define internal i1 @spin(i64 %begin, i32 %count) nounwind {
entry:
  $pause
  %low = and i32 %count, 31
  %ask = icmp eq i32 %low, 31
  br i1 %ask, label %look, label %go
look:
  %now = call i64 @now()
  %spent = sub i64 %now, %begin
  %more = icmp ult i64 %spent, $spin_ns
  ret i1 %more
go:
  ret i1 true
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

; Until the counter at %at is %wanted.
define internal void @await(ptr %at, i64 %wanted, ptr %sleepers) nounwind {
entry:
  %first = load atomic i64, ptr %at acquire, align 8
  %there = icmp eq i64 %first, %wanted
  br i1 %there, label %done, label %begin
begin:
  %since = call i64 @now()
  br label %wait
wait:
  %count = phi i32 [ 0, %begin ], [ %next, %again ], [ %count, %rest ]
  %next = add i32 %count, 1
  %more = call i1 @spin(i64 %since, i32 %count)
  %found = load atomic i64, ptr %at seq_cst, align 8
  %ready = icmp eq i64 %found, %wanted
  br i1 %ready, label %done, label %again
again:
  br i1 %more, label %wait, label %rest
rest:
  %seen = trunc i64 %found to i32
  call void @sleep(ptr %at, i32 %seen, ptr %sleepers)
  br label %wait
done:
  ret void
}
