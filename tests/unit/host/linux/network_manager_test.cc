#include "host/linux/network_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "host/linux/link_resolver.h"

namespace braid::network_manager_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// A D-Bus at a socket of its own, on which NetworkManager answers as it is told.
class Bus {
 public:
  /// Fills the answer to GetManagedObjects; false: it is an error.
  using Fill = std::function<bool(sd_bus_message*)>;

  explicit Bus(Loop& loop) : loop_(loop) {
    std::string name = std::filesystem::temp_directory_path() / "braid-bus-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string path = folder_ + "/socket";
    std::memcpy(address.sun_path, path.data(), path.size());
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + path).c_str(), 1);
    watcher_.emplace(loop, fd_.get(), [this] { accept(); });
  }
  ~Bus() {
    client_.reset();
    sd_bus_close_unref(bus_);
    ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
    std::filesystem::remove_all(folder_);
  }

  const std::string& folder() const { return folder_; }
  void answer(Fill fill) { fill_ = std::move(fill); }
  int calls() const { return calls_; }

 private:
  void accept() {
    int fd = ::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    sd_id128_t id{};
    id.bytes[0] = 1;
    client_.reset();
    sd_bus_close_unref(bus_);
    EXPECT_EQ(sd_bus_new(&bus_), 0);
    EXPECT_GE(sd_bus_set_fd(bus_, fd, fd), 0);
    EXPECT_GE(sd_bus_set_server(bus_, 1, id), 0);
    EXPECT_GE(sd_bus_start(bus_), 0);
    EXPECT_GE(sd_bus_add_filter(bus_, nullptr, &Bus::onMessage, this), 0);
    auto process = [this] {
      while (sd_bus_process(bus_, nullptr) > 0) {
      }
    };
    client_.emplace(loop_, fd, process, process);
    client_->wantWrite(true);
  }
  static int onMessage(sd_bus_message* message, void* self, sd_bus_error*) {
    return static_cast<Bus*>(self)->reply(message);
  }
  int reply(sd_bus_message* message) {
    if (!sd_bus_message_is_method_call(message, nullptr, nullptr)) return 0;  // the client's end
    if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus", "Hello"))
      return sd_bus_reply_method_return(message, "s", ":1.7");
    EXPECT_TRUE(sd_bus_message_is_method_call(message, "org.freedesktop.DBus.ObjectManager",
                                              "GetManagedObjects"));
    EXPECT_EQ(sd_bus_message_get_auto_start(message), 0) << "NetworkManager must not be started";
    ++calls_;
    if (!fill_) return 1;
    sd_bus_message* out = nullptr;
    EXPECT_GE(sd_bus_message_new_method_return(message, &out), 0);
    int sent = fill_(out) ? sd_bus_send(nullptr, out, nullptr)
                          : sd_bus_reply_method_errorf(message, SD_BUS_ERROR_ACCESS_DENIED, "no");
    sd_bus_message_unref(out);
    return sent;
  }

  Loop& loop_;
  std::string folder_;
  UniqueFd fd_;
  Fill fill_;
  int calls_ = 0;
  sd_bus* bus_ = nullptr;
  std::optional<IoWatcher> watcher_, client_;
};

constexpr const char* kNetworkManager = "org.freedesktop.NetworkManager";

bool fillTwoModems(sd_bus_message* out) {
  std::string device = std::string(kNetworkManager) + ".Device",
              ip4 = std::string(kNetworkManager) + ".IP4Config",
              ip6 = std::string(kNetworkManager) + ".IP6Config";
  return sd_bus_message_append(
             out, "a{oa{sa{sv}}}", 6,                                     //
             "/org/freedesktop/NetworkManager", 1, kNetworkManager, 1,    //
             "State", "u", 70,                                            //
             "/c6/1", 1, ip6.c_str(), 1, "Nameservers", "aay", 1,         //
             16, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,  //
             "/d/1", 2, "org.freedesktop.NetworkManager.Device.Wired", 1, "Speed", "u", 100,
             device.c_str(), 4, "IpInterface", "s", "wwan0", "Ip4Config", "o", "/c4/1", "Ip6Config",
             "o", "/c6/1", "Mtu", "u", 1500,  //
             "/d/2", 1, device.c_str(), 3, "Ip6Config", "o", "/", "Ip4Config", "o", "/c4/2",
             "IpInterface", "s", "wwan1",  //
             "/c4/1", 1, ip4.c_str(), 1, "NameserverData", "aa{sv}", 2, 1, "address", "s",
             "192.0.2.1", 2, "priority", "u", 1, "address", "s", "192.0.2.2",  //
             "/c4/2", 1, ip4.c_str(), 1, "NameserverData", "aa{sv}", 1, 1, "address", "s",
             "192.0.2.3") >= 0;
}

class NetworkManagerTest : public testing::Test {
 protected:
  NetworkManager::Servers asked() {
    std::optional<NetworkManager::Servers> out;
    manager_.ask([&](const NetworkManager::Servers& servers) { out = servers; });
    EXPECT_FALSE(out) << "no answer comes from within the call";
    while (!out) loop_.runOnce(true);
    return *out;
  }
  static std::vector<std::string> texts(const std::vector<Address>& addresses) {
    std::vector<std::string> out;
    for (const Address& a : addresses) out.push_back(a.toString());
    return out;
  }

  Loop loop_;
  Bus bus_{loop_};
  NetworkManager manager_{loop_};
};

TEST_F(NetworkManagerTest, EachInterfaceHasItsServers) {
  bus_.answer(fillTwoModems);
  for (int round = 0; round < 2; ++round) {
    NetworkManager::Servers found = asked();
    EXPECT_EQ(found.size(), 2u);
    EXPECT_THAT(texts(found["wwan0"]), ElementsAre("192.0.2.1", "192.0.2.2", "2001:db8::1"));
    EXPECT_THAT(texts(found["wwan1"]), ElementsAre("192.0.2.3"));
  }
}

TEST_F(NetworkManagerTest, WhoAsksMeanwhileGetsTheSameAnswer) {
  bus_.answer(fillTwoModems);
  int answers = 0;
  for (int asker = 0; asker < 3; ++asker)
    manager_.ask([&](const NetworkManager::Servers& servers) { answers += servers.size() == 2; });
  while (answers < 3) loop_.runOnce(true);
  EXPECT_EQ(bus_.calls(), 1);
}

TEST_F(NetworkManagerTest, WhatIsNotAsItShouldBeHasNoServers) {
  bus_.answer([](sd_bus_message* out) {
    return sd_bus_message_append(out, "a{oa{sa{sv}}}", 1, "/d/1", 1,
                                 "org.freedesktop.NetworkManager.Device", 1, "IpInterface", "u",
                                 7) >= 0;
  });
  EXPECT_THAT(asked(), IsEmpty());
  bus_.answer([](sd_bus_message* out) { return sd_bus_message_append(out, "s", "what?") >= 0; });
  EXPECT_THAT(asked(), IsEmpty());
  bus_.answer([](sd_bus_message*) { return false; });
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(NetworkManagerTest, WithoutAnAnswerItHasNoServers) {
  Time began = monotonicNow();
  EXPECT_THAT(asked(), IsEmpty());
  EXPECT_GE(monotonicNow() - began, NetworkManager::kPatience);
}

TEST_F(NetworkManagerTest, WithoutABusItHasNoServers) {
  ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent", 1);
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(NetworkManagerTest, WithoutADescriptorItHasNoServers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Loop& loop = loop_;  // UBSan itself needs descriptors to check members of a class with a vtable
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::optional<NetworkManager::Servers> out;
  std::optional<NetworkManager> manager;
  EXPECT_NO_THROW(manager.emplace(loop));
  if (manager) manager->ask([&](const NetworkManager::Servers& servers) { out = servers; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(manager);
  while (!out) loop_.runOnce(true);
  EXPECT_THAT(*out, IsEmpty());
}

TEST_F(NetworkManagerTest, ALookupAsksTheServersOfItsInterface) {
  bus_.answer(fillTwoModems);
  std::filesystem::create_directories(bus_.folder() + "/run/NetworkManager/devices");
  std::ofstream(bus_.folder() + "/run/NetworkManager/devices/7") << "[device]\n";
  std::vector<LookupResult> results;
  LinkResolver resolver(
      loop_, [&](const LookupResult& r) { results.push_back(r); }, LinkResolverFiles(bus_.folder()),
      1);
  LookupWay way;
  way.uplink = "lte";
  way.interface = "wwan1";
  way.link = 7;
  way.v4 = *Address::parse("127.0.0.1");
  resolver.request(way, {"hub.example.net", 4433});
  while (results.empty()) loop_.runOnce(true);
  EXPECT_THAT(texts(results[0].asked.servers), ElementsAre("192.0.2.3"));
  EXPECT_EQ(results[0].asked.source, "NetworkManager");
}

}  // namespace
}  // namespace braid::network_manager_test
