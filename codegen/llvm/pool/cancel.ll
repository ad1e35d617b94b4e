; Ends loops that need not end; called by the caller's thread alone.
;
;   %words   in the symbols of the request: not 0 to cancel; the address of a function, i32 (), or 0
;   %clock   the turn of the next call of @cancelled; nanoseconds when the function was called last; when this one was
;
; The function is called every $ask_ns ns and cancels by returning anything but 0: a host language looks for interrupts in
; it. Reading the clock takes longer than a short iteration, so loops of short ones come here every 32nd time only.

define internal i1 @cancelled(ptr %words, ptr %clock, i64 %turn) nounwind noinline {
entry:
  %now = call i64 @now()
  %seen.at = getelementptr i64, ptr %clock, i64 2
  %seen = load i64, ptr %seen.at, align 8
  store i64 %now, ptr %seen.at, align 8
  %spent = sub i64 %now, %seen
  %long = icmp ugt i64 %spent, 1000000
  %pause = select i1 %long, i64 1, i64 32
  %next = add i64 %turn, %pause
  store i64 %next, ptr %clock, align 8
  %word = load atomic i64, ptr %words monotonic, align 8
  %set = icmp ne i64 %word, 0
  br i1 %set, label %yes, label %any
any:
  %ask.at = getelementptr i64, ptr %words, i64 1
  %ask = load ptr, ptr %ask.at, align 8
  %none = icmp eq ptr %ask, null
  br i1 %none, label %no, label %wait
wait:
  %asked.at = getelementptr i64, ptr %clock, i64 1
  %asked = load i64, ptr %asked.at, align 8
  %first = icmp eq i64 %asked, 0
  br i1 %first, label %begin, label %count
begin:
  store i64 %now, ptr %asked.at, align 8
  br label %no
count:
  %waited = sub i64 %now, %asked
  %enough = icmp ugt i64 %waited, $ask_ns
  br i1 %enough, label %call, label %no
call:
  %answer = call i32 %ask()
  %after = call i64 @now()
  store i64 %after, ptr %asked.at, align 8
  %stop = icmp ne i32 %answer, 0
  ret i1 %stop
yes:
  ret i1 true
no:
  ret i1 false
}

