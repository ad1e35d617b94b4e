// Reads a handwritten digit with a compiled network, on Linux; with --target windows-x86-64-v3 and digits.dll, on Windows.
//
//     aot compile ../digits/model.xml -o digits.so --header digits.h
//     dotnet run ../digits/seven.npy ./digits.so
using System;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;

class Program {
    [StructLayout(LayoutKind.Sequential)]
    struct Model {
        public long Abi, Bytes;
        public IntPtr Manifest;
        public long ManifestBytes, InputCount;
        public IntPtr Inputs;
        public long OutputCount;
        public IntPtr Outputs;
        public long SymbolCount, CallCount;
        public IntPtr StateSize, Infer, Shapes, ArenaSize, PoolCreate, PoolDestroy, PoolResize, ErrorText;
    }

    [StructLayout(LayoutKind.Sequential)]
    struct Request {
        public IntPtr Inputs, Outputs, Symbols, Arena, State, Pool;
        public long Threads;
        public IntPtr Profile;
    }

    delegate IntPtr Query(int version);
    delegate int Infer(ref Request request);
    delegate long Size(IntPtr symbols, long threads);

    const int Header = 128, Pixels = 64, Digits = 10;

    static T Function<T>(IntPtr place) { return Marshal.GetDelegateForFunctionPointer<T>(place); }

    // Memory as a request wants it: at a multiple of 64, zero.
    static IntPtr Memory(long bytes) {
        var room = new byte[bytes + 128];
        var made = GCHandle.Alloc(room, GCHandleType.Pinned).AddrOfPinnedObject().ToInt64();
        return new IntPtr((made + 63) / 64 * 64);
    }

    static IntPtr Pointer(IntPtr value) {
        var made = Memory(IntPtr.Size);
        Marshal.WriteIntPtr(made, value);
        return made;
    }

    static int Main(string[] arguments) {
        var header = File.ReadAllText("digits.h");
        var name = Regex.Match(header, "AOT_DIGITS_NAME \"(\\w+)\"").Groups[1].Value;
        var version = int.Parse(Regex.Match(header, "#define AOT_ABI (\\d+)").Groups[1].Value);
        var library = NativeLibrary.Load(Path.GetFullPath(arguments[1]));
        var table = Function<Query>(NativeLibrary.GetExport(library, name))(version);
        if (table == IntPtr.Zero) return 5;
        var model = Marshal.PtrToStructure<Model>(table);

        IntPtr pixels = Memory(4 * Pixels), scores = Memory(4 * Digits);
        Marshal.Copy(File.ReadAllBytes(arguments[0]), Header, pixels, 4 * Pixels);
        var request = new Request {
            Inputs = Pointer(pixels), Outputs = Pointer(scores), Threads = 1,
            Arena = Memory(Function<Size>(model.ArenaSize)(IntPtr.Zero, 1)),
            State = Memory(Function<Size>(model.StateSize)(IntPtr.Zero, 1)),
        };
        var code = Function<Infer>(model.Infer)(ref request);
        if (code != 0) return 1;
        var found = new float[Digits];
        Marshal.Copy(scores, found, 0, Digits);
        Console.WriteLine(Array.IndexOf(found, found.Max()));
        return 0;
    }
}
