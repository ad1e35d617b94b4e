; Finds the highest level that the processor can run, by the features that Linux tells each process.

declare i64 @getauxval(i64)

define internal i32 @word(i64 %kind) nounwind noinline {
  %word = call i64 @getauxval(i64 %kind)
  %low = trunc i64 %word to i32
  ret i32 %low
}

define internal i1 @has(i32 %word, i32 %mask) nounwind {
  %both = and i32 %word, %mask
  %all = icmp eq i32 %both, %mask
  ret i1 %all
}
