// What fmt 9's headers leave to its shared library, compiled once into whatever is linked with tacc's: so libtacc.so
// needs no libfmt.so, and a program may have another version of it. Other versions leave out other things: then the
// shared library is linked, and this file is not compiled.
#include <fmt/format-inl.h>

namespace fmt::detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float);
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double);
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template std::locale locale_ref::get<std::locale>() const;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, format_args, locale_ref);

}  // namespace fmt::detail
