#pragma once

// Literals for the wire format's number types in tests, such as `3_subflow`, and their output in
// messages of failed tests. Not consteval: clang 14 does not evaluate such calls in default
// arguments and templates.

#include <limits>
#include <ostream>

#include "tunnel/wire/header.h"

namespace braid {

template <class N>
constexpr N numberLiteral(unsigned long long value) {
  if (value > std::numeric_limits<decltype(N{}.value())>::max())
    throw "beyond the range of that number";
  return N(static_cast<decltype(N{}.value())>(value));
}

constexpr SubflowId operator""_subflow(unsigned long long value) {
  return numberLiteral<SubflowId>(value);
}

constexpr FlowNumber operator""_flow(unsigned long long value) {
  return numberLiteral<FlowNumber>(value);
}

constexpr BlockId operator""_block(unsigned long long value) {
  return numberLiteral<BlockId>(value);
}

constexpr Dsn operator""_dsn(unsigned long long value) {
  return numberLiteral<Dsn>(value);
}

constexpr PacketNumber operator""_pn(unsigned long long value) {
  return numberLiteral<PacketNumber>(value);
}

template <class Tag, class Rep>
void PrintTo(Number<Tag, Rep> number, std::ostream* out) {
  *out << +number.value();
}

}  // namespace braid
