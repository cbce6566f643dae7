"""Compilers are limited by the conditions of the header, not by its messages."""

from __future__ import annotations

from provisioner.measure.texts import declares_rsqrt_noexcept, refused_compilers

HEADER = """\
#if defined(__GRCO_CLANG_COMPILER__)
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 19))
#error -- unsupported Grace clang version! The version must be 16.x to 19.x.
#endif
#if defined(__GNUC__)

#if __GNUC__ > 14

#error -- unsupported GNU version! gcc versions later than 13 are not supported!

#endif
#if defined(__HORIZON__)
#if (__clang_major__ >= 9) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
#error -- unsupported HOS clang version! The version must be less than 9
#endif
#endif
#if defined(__clang__) && !defined(__ICC) && !defined(__HORIZON__) && !defined(__APPLE__)

#if (__clang_major__ >= 20) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))
#error -- unsupported clang version! clang version must be less than 18 and greater than 3.2 .
"""


def test_the_conditions_count() -> None:
    assert refused_compilers(HEADER) == {"gcc": 15, "clang": 20}


def test_a_header_without_a_check_limits_nothing() -> None:
    assert refused_compilers("#define X 1\n") == {}


def test_an_exception_specifier_of_rsqrt() -> None:
    plain = "extern __DEVICE_FUNCTIONS_DECL__ __device_builtin__ double rsqrt(double x);\n"
    assert declares_rsqrt_noexcept(plain) is False
    assert declares_rsqrt_noexcept(plain.replace(");", ") _NV_RSQRT_SPECIFIER;")) is True
    assert declares_rsqrt_noexcept("double sqrt(double x);") is None
