// What a confined process can still do, tried in child processes.

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "host/linux/landlock.h"
#include "host/linux/process.h"
#include "host/linux/system_call_filter.h"
#include "host/system.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// What `f` says in a child process that has given up new privileges.
std::string inChild(const std::function<std::string()>& f) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    std::string said;
    try {
      said = f();
    } catch (const std::exception& e) {
      said = e.what();
    }
    ::_exit(::write(ends[1], said.data(), said.size()) < 0);
  }
  UniqueFd out(ends[0]);
  ::close(ends[1]);
  char text[2000];
  std::string said;
  for (ssize_t got; (got = ::read(out.get(), text, sizeof text)) > 0;)
    said.append(text, static_cast<size_t>(got));
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + " (ended badly)";
}

// An errno as text, "yes": it succeeded.
std::string outcome(long result) {
  return result >= 0 ? "yes" : ::strerrorname_np(errno);
}

class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/braid-landlock-XXXXXX";
    root_ = ::mkdtemp(name);
    for (const char* folder : {"read", "make", "other"}) {
      fs::create_directory(root_ / folder);
      std::ofstream(root_ / folder / "file") << "text";
    }
    std::ofstream(root_ / "setting") << "0";
    std::string lacks = inChild([] { return restrictFiles({}); });
    if (lacks != "") GTEST_SKIP() << lacks;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string path(const char* name) const { return (root_ / name).string(); }
  // The outcome of open() in a process that is restricted to this test's folders.
  std::string opened(const char* name, int flags) const {
    return inChild([&] {
      std::string lacks = restrict();
      return lacks.empty() ? outcome(::open(path(name).c_str(), flags, 0600)) : lacks;
    });
  }
  std::string restrict() const {
    return restrictFiles({{path("read"), path("not there")}, {path("setting")}, {path("make")}});
  }

  fs::path root_;
};

TEST_F(LandlockTest, WhatIsNamedCanBeOpened) {
  EXPECT_EQ(opened("read/file", O_RDONLY), "yes");
  EXPECT_EQ(opened("read", O_RDONLY | O_DIRECTORY), "yes");
  EXPECT_EQ(opened("setting", O_WRONLY), "yes");
  EXPECT_EQ(opened("make/file", O_RDWR | O_TRUNC), "yes");
  EXPECT_EQ(opened("make/new", O_WRONLY | O_CREAT | O_EXCL), "yes");
}

TEST_F(LandlockTest, NothingElseCan) {
  EXPECT_EQ(opened("other/file", O_RDONLY), "EACCES");
  EXPECT_EQ(opened("other/new", O_WRONLY | O_CREAT), "EACCES");
  EXPECT_EQ(opened("other", O_RDONLY | O_DIRECTORY), "EACCES");
  EXPECT_EQ(opened("read/file", O_WRONLY), "EACCES");
  EXPECT_EQ(opened("read/new", O_WRONLY | O_CREAT), "EACCES");
  EXPECT_FALSE(fs::exists(path("other/new")) || fs::exists(path("read/new")));
}

TEST_F(LandlockTest, FilesAreReplacedOnlyWhereTheyMayBeMade) {
  auto renamed = [&](const char* from, const char* to) {
    return inChild([&] {
      std::string lacks = restrict();
      return lacks.empty() ? outcome(::rename(path(from).c_str(), path(to).c_str())) : lacks;
    });
  };
  EXPECT_EQ(renamed("make/file", "make/other"), "yes");
  EXPECT_EQ(renamed("make/other", "read/file"), "EACCES");
  EXPECT_EQ(renamed("read/file", "make/file"), "EACCES");
  auto removed = [&](const char* name) {
    return inChild([&] { return restrict() + outcome(::unlink(path(name).c_str())); });
  };
  EXPECT_EQ(removed("read/file"), "EACCES");
  EXPECT_EQ(removed("make/other"), "yes");
}

TEST_F(LandlockTest, NoProgramIsExecuted) {
  std::string said = inChild([&] {
    std::string lacks = restrictFiles({{"/"}, {}, {"/"}});
    const char* words[] = {"/bin/true", nullptr};
    return lacks + outcome(::execv(words[0], const_cast<char**>(words)));
  });
  EXPECT_EQ(said, "EACCES");
}

TEST_F(LandlockTest, NeedsThatNoPrivilegesAreGained) {
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    GTEST_SKIP() << "whoever started this gains none";
  const pid_t child = ::fork();
  if (child == 0) {
    // CAP_SYS_ADMIN would do as well.
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    ::syscall(SYS_capset, &header, none);
    try {
      restrictFiles({});
      ::_exit(1);
    } catch (const SystemError& e) {
      ::_exit(e.code() == EPERM ? 0 : 2);
    }
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "what is refused is no kernel without Landlock";
}

class SystemCallFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string lacks = inChild([] { return restrictSystemCalls(); });
    if (lacks != "") GTEST_SKIP() << lacks;
  }
  // The outcome of a system call behind the filter.
  template <typename... Arguments>
  std::string called(long number, Arguments... arguments) {
    return inChild([=] {
      std::string lacks = restrictSystemCalls();
      return lacks.empty() ? outcome(::syscall(number, arguments...)) : lacks;
    });
  }
};

TEST_F(SystemCallFilterTest, WhatADaemonDoesNotDoIsNotThere) {
  for (long number : {SYS_execve,
                      SYS_execveat,
                      SYS_ptrace,
                      SYS_mount,
                      SYS_umount2,
                      SYS_unshare,
                      SYS_setns,
                      SYS_chroot,
                      SYS_bpf,
                      SYS_perf_event_open,
                      SYS_add_key,
                      SYS_keyctl,
                      SYS_kill,
                      SYS_setresuid,
                      SYS_setgroups,
                      SYS_reboot,
                      SYS_process_vm_readv,
                      SYS_personality,
                      SYS_init_module,
                      SYS_clock_settime,
                      SYS_memfd_create,
                      SYS_symlinkat,
                      SYS_mknodat,
                      SYS_open_by_handle_at,
                      SYS_userfaultfd,
                      SYS_io_setup,
                      SYS_shmat,
                      SYS_setpriority,
                      425 /* io_uring_setup */,
                      434 /* pidfd_open */,
                      435 /* clone3 */,
                      444 /* landlock_create_ruleset */}) {
    EXPECT_EQ(called(number, 0, 0, 0, 0, 0), "ENOSYS") << number;
  }
}

TEST_F(SystemCallFilterTest, SocketsAreThoseOfTheDaemon) {
  for (int family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK})
    EXPECT_EQ(called(SYS_socket, family, SOCK_DGRAM, 0), "yes") << family;
  for (int family : {AF_PACKET, AF_BLUETOOTH, AF_ALG, AF_VSOCK, AF_KEY, AF_CAN})
    EXPECT_EQ(called(SYS_socket, family, SOCK_RAW, 0), "EPERM") << family;
}

TEST_F(SystemCallFilterTest, NothingWrittenBecomesExecutable) {
  auto mapped = [&](int protection) {
    return called(SYS_mmap, nullptr, size_t{4096}, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0l);
  };
  EXPECT_EQ(mapped(PROT_READ | PROT_WRITE), "yes");
  EXPECT_EQ(mapped(PROT_READ | PROT_EXEC), "yes") << "as a library is loaded";
  EXPECT_EQ(mapped(PROT_READ | PROT_WRITE | PROT_EXEC), "EPERM");
  std::string changed = inChild([] {
    void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::string lacks = restrictSystemCalls();
    return lacks + outcome(::mprotect(page, 4096, PROT_READ)) + " " +
           outcome(::mprotect(page, 4096, PROT_READ | PROT_EXEC));
  });
  EXPECT_EQ(changed, "yes EPERM");
}

TEST_F(SystemCallFilterTest, ThreadsAreStartedAndProcessesAreNot) {
  EXPECT_EQ(inChild([] {
              std::string lacks = restrictSystemCalls();
              std::string inside;
              std::thread([&] { inside = outcome(::syscall(SYS_ptrace, 0, 0, 0, 0)); }).join();
              return lacks + inside;
            }),
            "ENOSYS")
      << "and the filter holds there";
  EXPECT_EQ(called(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr), "EPERM");
}

TEST_F(SystemCallFilterTest, SignalsReachThisProcessAlone) {
  EXPECT_EQ(inChild([] {
              std::string lacks = restrictSystemCalls();
              return lacks + outcome(::syscall(SYS_tgkill, ::getpid(), ::gettid(), 0)) + " " +
                     outcome(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0));
            }),
            "yes EPERM");
}

TEST(ServiceUserTest, WhatTheUserCannotUseIsNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may change its user";
  char name[] = "/tmp/braid-user-XXXXXX";
  const fs::path folder = ::mkdtemp(name);  // mode 0700, root's
  std::ofstream(folder / "file");
  EXPECT_EQ(obstacleAs("nobody", {{"/etc/hosts", R_OK}, {"/tmp", W_OK}, {"/not there", R_OK}}), "");
  EXPECT_EQ(obstacleAs("nobody", {{"/tmp", W_OK}, {(folder / "file").string(), R_OK}}),
            "that user cannot read " + (folder / "file").string());
  EXPECT_EQ(obstacleAs("nobody", {{"/etc", W_OK}}), "that user cannot write /etc");
  std::vector<NeededAccess> many(1000, {"/etc/hosts", R_OK});
  EXPECT_EQ(obstacleAs("nobody", many), "");
  many.push_back({"/etc", W_OK});
  EXPECT_EQ(obstacleAs("nobody", many), "that user cannot write /etc");
  EXPECT_THAT(obstacleAs("no-such-user-here", {}), HasSubstr("may not become"));
  EXPECT_EQ(::geteuid(), 0u) << "asking changes nothing";
  fs::remove_all(folder);
}

TEST(DropPrivilegesTest, TheBoundingSetIsLimitedAsWell) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs CAP_SETPCAP";
  std::string left = inChild([] {
    dropPrivileges();
    std::string out;
    for (unsigned long each = 0; ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each)
      if (::prctl(PR_CAPBSET_READ, each, 0, 0, 0) == 1) out += std::to_string(each) + " ";
    return out;
  });
  EXPECT_EQ(left, "10 12 13 ") << "CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW";
}

}  // namespace
}  // namespace braid
