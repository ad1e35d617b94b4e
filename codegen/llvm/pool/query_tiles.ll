; Linux lets a process use tile registers once it has asked: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA). It refuses
; where a thread has a signal stack that is too small for them, or where a policy forbids it: then there is no table.
define ptr @$query(i32 %version) nounwind {
entry:
  %known = icmp eq i32 %version, $abi_version
  br i1 %known, label %ask, label %none
ask:
  %code = call i64 (i64, ...) @syscall(i64 158, i64 4131, i64 18)
  %allowed = icmp eq i64 %code, 0
  br i1 %allowed, label %found, label %none
found:
  ret ptr @table
none:
  ret ptr null
}
