#pragma once

// Tables that describe the figures which an operator may see. Each struct of figures has a table
// that gives every member a name, a unit, a kind and a meaning. The JSON output, braidctl, sums and
// docs/figures.md are made from these tables, so that a figure is named in one place only.
//
//     struct Counts {
//       uint64_t sent = 0;
//       bool resting = false;
//     };
//     template <>
//     inline constexpr auto kFieldsOf<Counts> = field::table<Counts>(
//         field::counter("sent_packets", FieldUnit::kPackets, "datagrams sent", &Counts::sent),
//         field::flag("resting", "carries no data for now", &Counts::resting));
//
// A table has one entry for each base and each member, in their order. A table with a missing entry
// does not compile.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace braid {

/// How a figure changes over time, or what it holds.
enum class FieldKind : uint8_t {
  kCounter,  ///< only grows; 0 when the object that it belongs to is created
  kTally,    ///< a counter that may also decrease, when something counted is found not to count
  kGauge,    ///< the present value
  kFlag,     ///< true or false now
  kText,     ///< a name, a state or an id
  kRemark,   ///< a text that is usually empty; null in JSON when empty
  kObject,   ///< nested figures with a table of their own: one struct or a list
};
/// "counter", "tally", "gauge", "flag", "text", "text", "object".
constexpr const char* kindName(FieldKind kind) {
  constexpr std::array kNames{"counter", "tally", "gauge", "flag", "text", "text", "object"};
  return kNames[static_cast<size_t>(kind)];
}
/// Whether values of this kind may be summed.
constexpr bool isSummed(FieldKind kind) {
  return kind == FieldKind::kCounter || kind == FieldKind::kTally;
}

/// The unit of a figure. A Duration is converted to it.
enum class FieldUnit : uint8_t {
  kNone,  ///< a count of what the name says, or not a number
  kPackets,
  kBytes,
  kBytesPerSecond,
  kMilliseconds,
  kSeconds,
  kUnixSeconds,  ///< since 1970
  kFraction,     ///< 0 to 1 for a share
};
/// "", "packets", "bytes", "bytes/s", "ms", "s", "s since 1970", "fraction".
constexpr const char* unitName(FieldUnit unit) {
  constexpr std::array kNames{"",   "packets", "bytes",        "bytes/s",
                              "ms", "s",       "s since 1970", "fraction"};
  return kNames[static_cast<size_t>(unit)];
}

struct FieldInfo {
  const char* name = nullptr;  ///< in JSON; stable
  FieldUnit unit = FieldUnit::kNone;
  FieldKind kind = FieldKind::kGauge;
  const char* help = "";  ///< explanation for the operator; without a full stop
};

/// The table of a struct; a struct without one has nullptr.
template <typename T>
inline constexpr auto kFieldsOf = nullptr;
template <typename T>
concept HasFields = !std::is_null_pointer_v<std::remove_const_t<decltype(kFieldsOf<T>)>>;

namespace field {

// ---- entries

/// A figure, or a nested object of figures.
template <typename Owner, typename V>
struct Field {
  using Value = V;
  FieldInfo info;
  V Owner::*member;
};
/// A member whose figures are listed as if they were the owner's.
template <typename Owner, typename V>
struct Inlined {
  using Value = V;
  V Owner::*member;
};
/// A base class; its figures are listed as the owner's.
template <typename B>
struct Base {
  using Value = B;
};
/// A member that is not a figure, or that is listed elsewhere in an answer.
template <typename V>
struct Unlisted {
  using Value = V;
};

template <typename Owner, typename V>
constexpr Field<Owner, V> counter(const char* name, FieldUnit unit, const char* help,
                                  V Owner::*member) {
  return {{name, unit, FieldKind::kCounter, help}, member};
}
template <typename Owner, typename V>
constexpr Field<Owner, V> tally(const char* name, FieldUnit unit, const char* help,
                                V Owner::*member) {
  return {{name, unit, FieldKind::kTally, help}, member};
}
/// A gauge. For a list its value is the number of elements.
template <typename Owner, typename V>
constexpr Field<Owner, V> gauge(const char* name, FieldUnit unit, const char* help,
                                V Owner::*member) {
  return {{name, unit, FieldKind::kGauge, help}, member};
}
template <typename Owner>
constexpr Field<Owner, bool> flag(const char* name, const char* help, bool Owner::*member) {
  return {{name, FieldUnit::kNone, FieldKind::kFlag, help}, member};
}
template <typename Owner, typename V>
constexpr Field<Owner, V> text(const char* name, const char* help, V Owner::*member) {
  return {{name, FieldUnit::kNone, FieldKind::kText, help}, member};
}
template <typename Owner, typename V>
constexpr Field<Owner, V> remark(const char* name, const char* help, V Owner::*member) {
  return {{name, FieldUnit::kNone, FieldKind::kRemark, help}, member};
}
template <typename Owner, typename V>
constexpr Field<Owner, V> object(const char* name, const char* help, V Owner::*member) {
  return {{name, FieldUnit::kNone, FieldKind::kObject, help}, member};
}
template <typename Owner, typename V>
constexpr Inlined<Owner, V> inlined(V Owner::*member) {
  return {member};
}
template <typename B>
constexpr Base<B> base() {
  return {};
}
template <typename Owner, typename V>
constexpr Unlisted<V> unlisted(V Owner::*) {
  return {};
}

// ---- tables

/// The aggregate T can be initialized with one value for each of these entries.
template <typename T, typename... Entry>
concept TakesEach = requires {
  T{std::declval<typename Entry::Value>()...};
};
/// The aggregate T can be initialized with one value more than there are entries.
template <typename T, typename... Entry>
concept TakesMore = requires {
  T{std::declval<typename Entry::Value>()..., {}};
};
/// Whether the entries cover all bases and members of T.
template <typename T, typename... Entry>
concept Covers = TakesEach<T, Entry...> && !TakesMore<T, Entry...>;

template <size_t I, typename Entry>
struct Slot {
  Entry entry;
};
template <typename Indices, typename... Entry>
struct Slots;
/// The entries of a table, in order. Not a std::tuple, because that takes several times as long to
/// compile.
template <size_t... I, typename... Entry>
struct Slots<std::index_sequence<I...>, Entry...> : Slot<I, Entry>... {
  template <typename F>
  constexpr void each(F&& use) const {
    (use(static_cast<const Slot<I, Entry>&>(*this).entry), ...);
  }
};

template <typename T, typename... Entry>
consteval auto table(Entry... entries) {
  static_assert(Covers<T, Entry...>, "a base or a member has no entry, or not in its place");
  return Slots<std::index_sequence_for<Entry...>, Entry...>{{entries}...};
}

template <typename Owner, typename V>
Owner ownerOf(V Owner::*);
template <typename V>
concept IsArrayOfObjects = HasFields<typename V::value_type> &&(std::tuple_size<V>::value > 0);

}  // namespace field

// ---- use

/// The table entry of a member: infoOf<&Counts::sent>(). A member without a name of its own does
/// not compile.
template <auto Member>
consteval FieldInfo infoOf() {
  FieldInfo found;
  kFieldsOf<decltype(field::ownerOf(Member))>.each([&](const auto& entry) {
    if constexpr (requires { entry.info.name, entry.member == Member; }) {
      if (entry.member == Member) found = entry.info;
    }
  });
  if (!found.name) throw "the member has no name of its own";
  return found;
}

/// Calls use(info, value) for each figure of the struct, including those of bases and inlined
/// members.
template <HasFields T, typename F>
constexpr void forEachField(const T& object, F&& use) {
  kFieldsOf<T>.each([&]<typename Entry>(const Entry& entry) {
    if constexpr (requires { entry.info; }) {
      use(entry.info, object.*entry.member);
    } else if constexpr (requires { entry.member; }) {
      forEachField(object.*entry.member, use);
    } else if constexpr (std::is_base_of_v<typename Entry::Value, T>) {
      forEachField<typename Entry::Value>(object, use);
    }
  });
}

/// Calls change(a, b) for each counter and tally of two structs, including those in nested objects
/// and arrays of objects.
template <HasFields T, typename F>
constexpr void combineCounters(T& a, const T& b, F&& change) {
  kFieldsOf<T>.each([&]<typename Entry>(const Entry& entry) {
    using Value = typename Entry::Value;
    if constexpr (!requires { entry.member; }) {
      if constexpr (std::is_base_of_v<Value, T>) combineCounters<Value>(a, b, change);
    } else if constexpr (HasFields<Value>) {
      combineCounters(a.*entry.member, b.*entry.member, change);
    } else if constexpr (field::IsArrayOfObjects<Value>) {
      for (size_t i = 0; i < std::tuple_size_v<Value>; ++i)
        combineCounters((a.*entry.member)[i], (b.*entry.member)[i], change);
    } else if constexpr (std::is_arithmetic_v<Value>) {
      if (isSummed(entry.info.kind)) change(a.*entry.member, b.*entry.member);
    }
  });
}
template <HasFields T>
constexpr void addCounters(T& sum, const T& more) {
  combineCounters(sum, more, [](auto& a, const auto& b) { a += b; });
}
/// Turns the counters of `now` into what was counted since `before`. Gauges stay as they are.
template <HasFields T>
constexpr void subtractCounters(T& now, const T& before) {
  combineCounters(now, before, [](auto& a, const auto& b) { a -= b; });
}

}  // namespace braid
