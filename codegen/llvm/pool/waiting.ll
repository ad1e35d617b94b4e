; How threads wait: they spin for as long as waking a sleeper takes, then sleep. Nobody yields: where others want the
; processor too, that gives away several milliseconds.

$declarations
$pause_declaration

$now

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

$sleep

$rouse

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
