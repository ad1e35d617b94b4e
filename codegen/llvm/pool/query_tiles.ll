; A system lets a process use tile registers once it has asked. Where it refuses there is no table.
define ptr @$query(i32 %version) nounwind {
entry:
  %known = icmp eq i32 %version, $abi_version
  br i1 %known, label %ask, label %none
ask:
  %code = $ask_for_tiles
  %allowed = icmp eq i64 %code, 0
  br i1 %allowed, label %found, label %none
found:
  ret ptr @table
none:
  ret ptr null
}
