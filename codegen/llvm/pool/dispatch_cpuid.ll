; Finds the highest level that processor and operating system can run.

define internal { i32, i32, i32, i32 } @cpuid(i32 %leaf, i32 %subleaf) nounwind noinline {
  %words = call { i32, i32, i32, i32 } asm sideeffect "cpuid",
      "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"(i32 %leaf, i32 %subleaf)
  ret { i32, i32, i32, i32 } %words
}

; Word `%index` of a leaf, 0 if the processor has no such leaf or subleaf.
define internal i32 @word(i32 %leaf, i32 %index, i32 %subleaf) nounwind noinline {
entry:
  %words = alloca { i32, i32, i32, i32 }, align 16
  %base = and i32 %leaf, $extended
  %most.words = call { i32, i32, i32, i32 } @cpuid(i32 %base, i32 0)
  %most = extractvalue { i32, i32, i32, i32 } %most.words, 0
  %known = icmp uge i32 %most, %leaf
  br i1 %known, label %read, label %none
read:
  %found = call { i32, i32, i32, i32 } @cpuid(i32 %leaf, i32 %subleaf)
  store { i32, i32, i32, i32 } %found, ptr %words, align 16
  %at = getelementptr i32, ptr %words, i32 %index
  %word = load i32, ptr %at, align 4
  ret i32 %word
none:
  ret i32 0
}

; The registers that the operating system saves (XCR0); 0 if OSXSAVE is not set, for then it does not say.
define internal i32 @saved(i32 %word) nounwind noinline {
entry:
  %bit = and i32 %word, $osxsave
  %tells = icmp ne i32 %bit, 0
  br i1 %tells, label %read, label %none
read:
  %pair = call { i32, i32 } asm sideeffect ".byte 0x0f, 0x01, 0xd0", "={ax},={dx},{cx}"(i32 0)
  %low = extractvalue { i32, i32 } %pair, 0
  ret i32 %low
none:
  ret i32 0
}

define internal i1 @has(i32 %word, i32 %mask) nounwind {
  %both = and i32 %word, %mask
  %all = icmp eq i32 %both, %mask
  ret i1 %all
}
