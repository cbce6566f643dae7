"""Triton: a kernel compiled for a GPU of NVIDIA or AMD, from Python to machine code by its own ptxas or LLVM, which needs no GPU."""

import os
import sys
import tempfile

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def twice(x, n: tl.constexpr):
    at = x + tl.arange(0, n)
    tl.store(at, tl.load(at) * 2.0)
"""


def measure(probe):
    import triton

    probe.version(triton.__version__)
    # Triton 2 has another interface, which looks for libcuda when it compiles.
    if int(triton.__version__.split(".")[0]) > 2:
        probe.outcome("compile", is_compiled, triton, probe.accelerator)


def is_compiled(triton, accelerator):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    # Triton reads the source of a kernel from a file.
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "provision_kernel.py"), "w") as stream:
            stream.write(KERNEL)
        sys.path.insert(0, folder)
        os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "cache")
        import provision_kernel

        signature = {"x": "*fp32", "n": "constexpr"}
        try:
            source = ASTSource(fn=provision_kernel.twice, signature=signature, constexprs={"n": 32})
        except TypeError:
            # Triton before 3.2 calls them constants, and leaves them out of the signature.
            source = ASTSource(fn=provision_kernel.twice, signature={"x": "*fp32"}, constants={"n": 32})
        is_rocm = accelerator == "rocm"
        target = GPUTarget("hip", "gfx942", 64) if is_rocm else GPUTarget("cuda", 80, 32)
        compiled = triton.compile(source, target=target)
        binary, text, entry = ("hsaco", "amdgcn", "twice:") if is_rocm else ("cubin", "ptx", "twice(")
        return binary in compiled.asm and entry in compiled.asm[text]
