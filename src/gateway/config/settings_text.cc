// Writes the table of settings as documents: Markdown for docs/reference.md, mdoc for
// braid.yaml(5).

#include <algorithm>
#include <string>
#include <string_view>

#include "gateway/config/settings.h"

namespace braid {
namespace {

struct SectionText {
  std::string_view path, intro;
};
// In the order of the documents. The intro is a sentence, or empty.
constexpr SectionText kSections[] = {
    {"", ""},
    {"identity",
     "A relative path counts from the configuration's folder, or is taken from "
     "`$CREDENTIALS_DIRECTORY` when the file is there."},
    {"device", ""},
    {"offloads", ""},
    {"uplinks", "A list."},
    {"uplinks.metered", ""},
    {"uplinks.rate-limit", ""},
    {"peers",
     "A list. A file of `peers-folder` has these keys, and `routes`: networks that are routed into "
     "the device."},
    {"control", ""},
    {"log", ""},
    {"tunnel", ""},
    {"tunnel.amp", "For `controller: amp` and `auto`."},
    {"tunnel.ack-shim", ""},
    {"tunnel.ack-shim.exclude", "A list. One of the keys must be there."},
    {"streams",
     "TCP connections that end at the gateways and cross the tunnel as streams of bytes. Both "
     "gateways need the section. Only for a TUN device."},
    {"streams.match", "A list. One of the keys must be there."},
    {"streams.exclude", "A list. One of the keys must be there."},
    {"streams.accept", "A list. One of the keys must be there."},
    {"dns", "What `braidctl dns set` does with them is in the guide."},
    {"forwards", "A list; the first that matches counts."},
    {"recovery", ""},
    {"recovery.classes",
     "A list. A key that is not there matches everything; one of the first three must be there."}};

// The text with its code in the manual's bold face.
std::string manualText(std::string_view text) {
  std::string out;
  bool bold = false;
  for (char c : text) {
    if (c == '`') {
      bold = !bold;
      out += bold ? "\\fB" : "\\fP";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out;
}

// Sentences, one a line, as mdoc asks for.
std::string manualLines(std::string_view text) {
  std::string out = manualText(text);
  if (out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
  for (size_t at = 0; (at = out.find(". ", at)) != std::string::npos;) out[at + 1] = '\n';
  return out + "\n";
}

std::string manualDefault(const Setting& setting) {
  std::string text = setting.value.fallback;
  std::erase(text, '`');
  return text.empty() || text == "none" ? "" : " Pq " + text;
}

// The sections that are one section in UCI as well.
constexpr std::string_view kUciSections[] = {"device", "tunnel", "tunnel.ack-shim", "streams",
                                             "recovery"};

}  // namespace

std::string settingsUci() {
  std::string out = "braid_settings() {\n\tcase \"$1\" in\n";
  for (std::string_view section : kUciSections) {
    std::string options;
    for (const Setting& each : settings()) {
      if (each.section != section || !each.value.show) continue;
      options += " " + std::string(each.key);
      if (!each.former.empty()) options += " " + std::string(each.former);
    }
    std::replace(options.begin(), options.end(), '-', '_');
    out += "\t" + std::string(section) + ") echo" + options + " ;;\n";
  }
  return out + "\tesac\n}\n";
}

std::string settingsReference() {
  std::string out =
      "# The configuration file: every key\n\n"
      "This page is made from the table of settings in `src/gateway/config/settings.cc`; a test "
      "compares them.\n"
      "\"R\" in the last column: a changed value needs a restart; a reload takes over everything "
      "else.\n";
  for (const SectionText& section : kSections) {
    out += "\n## " + (section.path.empty() ? "Top" : std::string(section.path)) + "\n\n";
    if (!section.intro.empty()) out += std::string(section.intro) + "\n\n";
    out += "| key | type, range | default | meaning | |\n| --- | --- | --- | --- | --- |\n";
    for (const Setting& each : settings()) {
      if (each.section != section.path) continue;
      out += "| `" + std::string(each.key) + "` | " + each.value.values + " | " +
             each.value.fallback + " | " + std::string(each.help) + " | " +
             (each.change == SettingChange::kRestart ? "R |\n" : "|\n");
    }
  }
  return out;
}

std::string settingsManual() {
  std::string out = ".Sh SECTIONS\nThe value in parentheses holds when the key is missing.\n";
  for (const SectionText& section : kSections) {
    out += ".Ss " + (section.path.empty() ? "Top" : std::string(section.path)) + "\n";
    if (!section.intro.empty()) out += manualLines(section.intro);
    out += ".Bl -tag -width Ds\n";
    for (const Setting& each : settings()) {
      if (each.section != section.path) continue;
      out += ".It Cm " + std::string(each.key) + manualDefault(each) + "\n";
      if (each.value.values != "section") out += manualText(each.value.values) + ".\n";
      out += manualLines(std::string(each.help) + ".");
      if (each.change == SettingChange::kRestart) out += ".Bq restart\n";
    }
    out += ".El\n";
  }
  return out;
}

}  // namespace braid
