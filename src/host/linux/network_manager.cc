#include "host/linux/network_manager.h"

#include <utility>

#ifdef BRAID_SYSTEMD
#include <poll.h>
#include <systemd/sd-bus.h>
#endif

namespace braid {

#ifdef BRAID_SYSTEMD

namespace {

// NetworkManager's D-Bus API, version 1.14 and later:
// https://networkmanager.dev/docs/api/latest/spec.html
constexpr const char* kName = "org.freedesktop.NetworkManager";
constexpr const char* kRoot = "/org/freedesktop";
constexpr std::string_view kDevice = "org.freedesktop.NetworkManager.Device";
constexpr std::string_view kIp4 = "org.freedesktop.NetworkManager.IP4Config";
constexpr std::string_view kIp6 = "org.freedesktop.NetworkManager.IP6Config";

// Reads the answer to GetManagedObjects, a{oa{sa{sv}}}: the properties of all interfaces of all
// objects. Each function returns false when something else stands there.
class ObjectsReader {
 public:
  explicit ObjectsReader(sd_bus_message* message) : message_(message) {}

  NetworkManager::Servers read() {
    bool isWhole = forEachEntry('o', "a{sa{sv}}", [this](const std::string& path) {
      return forEachEntry('s', "a{sv}", [this, &path](const std::string& interface) {
        return forEachEntry('s', "v", [this, &path, &interface](const std::string& property) {
          return readProperty(path, interface, property);
        });
      });
    });
    NetworkManager::Servers out;
    if (!isWhole) return out;
    for (const auto& [path, device] : devices_) {
      std::vector<Address>& servers = out[device.interface];
      for (const std::string& config : {device.ip4, device.ip6}) {
        const std::vector<Address>& more = servers_[config];
        servers.insert(servers.end(), more.begin(), more.end());
      }
    }
    return out;
  }

 private:
  struct Device {
    std::string interface, ip4, ip6;  ///< its name, and the paths of its configurations
  };

  bool enter(char type, const std::string& content) {
    return sd_bus_message_enter_container(message_, type, content.c_str()) > 0;
  }
  bool leave() { return sd_bus_message_exit_container(message_) >= 0; }
  bool isAtEnd() { return sd_bus_message_at_end(message_, 0) != 0; }

  // Calls f(key) at the value of each entry of a map.
  template <typename F>
  bool forEachEntry(char keyType, const std::string& valueType, F&& f) {
    std::string entry = keyType + valueType;
    if (!enter('a', "{" + entry + "}")) return false;
    while (!isAtEnd()) {
      std::string key;
      if (!enter('e', entry) || !readText(keyType, key) || !f(key) || !leave()) return false;
    }
    return leave();
  }
  // Calls f at each item of an array.
  template <typename F>
  bool forEachItem(const std::string& type, F&& f) {
    if (!enter('a', type)) return false;
    while (!isAtEnd()) {
      if (!f()) return false;
    }
    return leave();
  }
  bool readText(char type, std::string& out) {
    const char* text = nullptr;
    if (sd_bus_message_read_basic(message_, type, &text) <= 0) return false;
    out = text;
    return true;
  }
  bool readTextValue(char type, std::string& out) {
    return enter('v', std::string(1, type)) && readText(type, out) && leave();
  }

  bool readProperty(const std::string& path, std::string_view interface,
                    std::string_view property) {
    if (interface == kDevice) {
      Device& device = devices_[path];
      if (property == "IpInterface") return readTextValue('s', device.interface);
      if (property == "Ip4Config") return readTextValue('o', device.ip4);
      if (property == "Ip6Config") return readTextValue('o', device.ip6);
    } else if (interface == kIp4 && property == "NameserverData") {
      return enter('v', "aa{sv}") && readServers4(servers_[path]) && leave();
    } else if (interface == kIp6 && property == "Nameservers") {
      return enter('v', "aay") && readServers6(servers_[path]) && leave();
    }
    return sd_bus_message_skip(message_, "v") > 0;
  }
  bool readServers4(std::vector<Address>& out) {
    return forEachItem("a{sv}", [&] {
      return forEachEntry('s', "v", [&](const std::string& key) {
        if (key != "address") return sd_bus_message_skip(message_, "v") > 0;
        std::string text;
        if (!readTextValue('s', text)) return false;
        if (std::optional<Address> address = Address::parse(text)) out.push_back(*address);
        return true;
      });
    });
  }
  bool readServers6(std::vector<Address>& out) {
    return forEachItem("ay", [&] {
      const void* bytes = nullptr;
      size_t size = 0;
      if (sd_bus_message_read_array(message_, 'y', &bytes, &size) <= 0) return false;
      if (size == 16) out.push_back(Address::v6({static_cast<const uint8_t*>(bytes), size}));
      return true;
    });
  }

  sd_bus_message* message_;
  std::map<std::string, Device> devices_;                ///< by path
  std::map<std::string, std::vector<Address>> servers_;  ///< by path of the configuration
};

}  // namespace

// A connection to the system bus with a call on its way. `onEnd` is called when it is over.
class NetworkManager::Question {
 public:
  Question(Loop& loop, std::function<void()> onEnd) : onEnd_(std::move(onEnd)) {
    if (sd_bus_open_system(&bus_) < 0 || !call()) {
      onEnd_();
      return;
    }
    auto process = [this] { this->process(); };
    watcher_ = std::make_unique<IoWatcher>(loop, sd_bus_get_fd(bus_), process, process);
    watcher_->wantWrite(true);
  }
  ~Question() {
    watcher_.reset();
    sd_bus_slot_unref(slot_);
    sd_bus_close_unref(bus_);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  const Servers& servers() const { return servers_; }

 private:
  bool call() {
    sd_bus_message* message = nullptr;
    bool isSent = sd_bus_message_new_method_call(bus_, &message, kName, kRoot,
                                                 "org.freedesktop.DBus.ObjectManager",
                                                 "GetManagedObjects") >= 0 &&
                  sd_bus_message_set_auto_start(message, 0) >= 0 &&
                  sd_bus_call_async(bus_, &slot_, message, &Question::onReply, this, 0) >= 0;
    sd_bus_message_unref(message);
    return isSent;
  }
  static int onReply(sd_bus_message* message, void* self, sd_bus_error*) {
    auto* question = static_cast<Question*>(self);
    if (sd_bus_message_is_method_error(message, nullptr) == 0)
      question->servers_ = ObjectsReader(message).read();
    question->onEnd_();
    return 0;
  }
  void process() {
    int done;
    while ((done = sd_bus_process(bus_, nullptr)) > 0) {
    }
    int events = done < 0 ? done : sd_bus_get_events(bus_);
    if (events < 0) {
      watcher_->wantWrite(false);
      return onEnd_();
    }
    watcher_->wantWrite((events & POLLOUT) != 0);
  }

  std::function<void()> onEnd_;
  sd_bus* bus_ = nullptr;
  sd_bus_slot* slot_ = nullptr;
  Servers servers_;
  std::unique_ptr<IoWatcher> watcher_;
};

#else

class NetworkManager::Question {
 public:
  Question(Loop&, const std::function<void()>& onEnd) { onEnd(); }
  const Servers& servers() const { return servers_; }

 private:
  Servers servers_;
};

#endif

NetworkManager::NetworkManager(Loop& loop) : loop_(loop), done_(loop, [this] { finish(); }) {}

NetworkManager::~NetworkManager() = default;

void NetworkManager::ask(OnServers onServers) {
  waiting_.push_back(std::move(onServers));
  if (question_) return;
  done_.start(kPatience);
  question_ = std::make_unique<Question>(loop_, [this] { done_.start({}); });
}

void NetworkManager::finish() {
  done_.stop();
  const Servers servers = question_->servers();
  question_.reset();
  for (const OnServers& onServers : std::exchange(waiting_, {})) onServers(servers);
}

}  // namespace braid
