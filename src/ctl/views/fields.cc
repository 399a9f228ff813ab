#include "ctl/views/fields.h"

namespace braid {

std::string figureText(const nlohmann::json& object, const FieldInfo& info) {
  if (info.kind == FieldKind::kFlag) return flagOf(object, info.name) ? "yes" : "no";
  switch (info.unit) {
    case FieldUnit::kBytes:
      return formatBytes(numberOf(object, info.name));
    case FieldUnit::kBytesPerSecond:
      return formatRate(numberOf(object, info.name));
    case FieldUnit::kMilliseconds:
      return formatMilliseconds(numberOf(object, info.name));
    case FieldUnit::kSeconds:
      return formatAge(numberOf(object, info.name));
    case FieldUnit::kUnixSeconds:
      return formatDate(numberOf(object, info.name));
    case FieldUnit::kFraction:
      return formatFraction(numberOf(object, info.name));
    case FieldUnit::kNone:
    case FieldUnit::kPackets:
      break;
  }
  nlohmann::json value = fieldOf(object, info.name);
  return value.is_number_float() ? formatNumber(value.get<double>()) : textOf(object, info.name);
}

}  // namespace braid
