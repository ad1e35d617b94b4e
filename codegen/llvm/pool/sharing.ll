; How fast calls were alone and shared: hints that no result depends on.
;
; What a piece took lately, alone and shared, in 1/1024 ns (0: never tried), and how often that was asked for.
@paces = internal global [2 x i64] zeroinitializer, align 16
@turns = internal global i64 0, align 8

; Short calls alone from one trial of sharing to the next, less one: twice as many after each that did not pay, until that
; takes a tenth of a second.
@patience = internal global i64 127, align 8

; Whether sharing was faster lately, by an eighth. Where another process takes a processor, one thread may wait for what
; the other has begun for longer than it needs to do all itself.
define internal i1 @sharing_pays() nounwind {
  %alone = load atomic i64, ptr @paces monotonic, align 8
  %shared = load atomic i64, ptr getelementptr (i64, ptr @paces, i64 1) monotonic, align 8
  %margin = lshr i64 %shared, 3
  %least = add i64 %shared, %margin
  %faster = icmp sle i64 %least, %alone
  %untried = icmp eq i64 %alone, 0
  %pays = or i1 %faster, %untried
  ret i1 %pays
}

; Whether a call of some pieces takes so long that threads may sleep before: 1 ms.
define internal i1 @is_long(i64 %ns) nounwind {
  %long = icmp ugt i64 %ns, 1000000
  ret i1 %long
}

; Whether threads are to share the next calls, if that pays. The other way is tried now and then: alone once; shared
; several times in a row where calls are short, for the first ones only wake the threads. Next to a busy process a trial may
; wait for milliseconds, so they become rare.
define internal i1 @next_shared(i64 %pieces) nounwind {
  %turn = atomicrmw add ptr @turns, i64 1 monotonic
  %pays = call i1 @sharing_pays()
  %alone = load atomic i64, ptr @paces monotonic, align 8
  %fine = mul i64 %alone, %pieces
  %ns = lshr i64 %fine, 10
  %long = call i1 @is_long(i64 %ns)
  %row.bits = select i1 %long, i64 1, i64 3
  %patience = load atomic i64, ptr @patience monotonic, align 8
  %rest = select i1 %long, i64 31, i64 %patience
  %mask = select i1 %pays, i64 1023, i64 %rest
  %place = and i64 %turn, %mask
  %once = icmp eq i64 %place, 9
  %rows = lshr i64 %place, %row.bits
  %row = icmp eq i64 %rows, 1
  %trial = select i1 %pays, i1 %once, i1 %row
  %share = xor i1 %pays, %trial
  %over = icmp eq i64 %place, 16
  %period = mul i64 %ns, %patience
  %soon = icmp ult i64 %period, 100000000
  %few = icmp ult i64 %patience, 8191
  %vain = and i1 %soon, %few
  %double = shl i64 %patience, 1
  %more = or i64 %double, 1
  %longer = select i1 %vain, i64 %more, i64 %patience
  %waits = select i1 %over, i64 %longer, i64 %patience
  %next = select i1 %pays, i64 127, i64 %waits
  %changes = icmp ne i64 %next, %patience
  br i1 %changes, label %change, label %done
change:
  store atomic i64 %next, ptr @patience monotonic, align 8
  br label %done
done:
  ret i1 %share
}

; The least of the first few, for they find nothing in the caches; then a little up or down each time, towards the median,
; which no single delay upsets. Trials are few: a quarter of the way. What a short call took while workers were not %awake
; says nothing.
define internal void @note(i64 %begin, i64 %pieces, i1 %shared, i1 %awake) nounwind {
entry:
  %end = call i64 @now()
  %ns = sub i64 %end, %begin
  %long = call i1 @is_long(i64 %ns)
  %meant = or i1 %long, %awake
  br i1 %meant, label %keep, label %done
keep:
  %fine = shl i64 %ns, 10
  %pace = udiv i64 %fine, %pieces
  %index = zext i1 %shared to i64
  %at = getelementptr i64, ptr @paces, i64 %index
  %old = load atomic i64, ptr %at monotonic, align 8
  %step = lshr i64 %old, 5
  %up = add i64 %old, %step
  %down = sub i64 %old, %step
  %slower = icmp ugt i64 %pace, %old
  %near = select i1 %slower, i64 %up, i64 %down
  %twice = mul i64 %old, 2
  %bounded = call i64 @llvm.smin.i64(i64 %pace, i64 %twice)
  %more = sub i64 %bounded, %old
  %part = ashr i64 %more, 2
  %mean = add i64 %old, %part
  %pays = call i1 @sharing_pays()
  %trial = xor i1 %pays, %shared
  %moved = select i1 %trial, i64 %mean, i64 %near
  %least = call i64 @llvm.smin.i64(i64 %pace, i64 %old)
  %turn = load atomic i64, ptr @turns monotonic, align 8
  %early = icmp ult i64 %turn, 10
  %later = select i1 %early, i64 %least, i64 %moved
  %first = icmp eq i64 %old, 0
  %new = select i1 %first, i64 %pace, i64 %later
  store atomic i64 %new, ptr %at monotonic, align 8
  br label %done
done:
  ret void
}
