#include "fleetfit/measure/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/measure/kernel_tree.h"

namespace fleetfit::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string cpu(int core, std::string_view file) {
  return "sys/devices/system/cpu/cpu" + std::to_string(core) + "/" + std::string(file);
}

void put_cache(const KernelTree& tree, int core, int index, std::string_view level,
               std::string_view type, std::string_view size, std::string_view shared) {
  const auto folder = cpu(core, "cache/index" + std::to_string(index) + "/");
  tree.put(folder + "level", level);
  tree.put(folder + "type", type);
  tree.put(folder + "size", size);
  tree.put(folder + "coherency_line_size", "64");
  tree.put(folder + "shared_cpu_list", shared);
}

void put_laptop(const KernelTree& tree) {
  const std::string flags =
      "flags\t\t: fpu sse sse2 ht sse4_1 sse4_2 avx avx2 fma f16c avx512f avx512_vnni\n";
  std::string cpuinfo;
  for (const auto* core : {"0", "1"}) {
    cpuinfo += std::string("processor\t: ") + core +
               "\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-1165G7\n" + flags +
               "bugs\t\t: spectre_v1\npower management:\n\n";
  }
  tree.put("proc/cpuinfo", cpuinfo);
  tree.put("proc/meminfo", "MemTotal:       16167328 kB\nMemFree:         1234567 kB");
  tree.put("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
  tree.put("sys/devices/system/cpu/online", "0-1");
  for (const int core : {0, 1}) {
    const auto own = std::to_string(core);
    tree.put(cpu(core, "cpufreq/cpuinfo_min_freq"), "400000");
    tree.put(cpu(core, "cpufreq/cpuinfo_max_freq"), "4700000");
    put_cache(tree, core, 0, "1", "Data", "48K", own);
    put_cache(tree, core, 1, "1", "Instruction", "32K", own);
    put_cache(tree, core, 2, "2", "Unified", "1280K", own);
    put_cache(tree, core, 3, "3", "Unified", "12288K", "0-1");
  }
}

void put_phone(const KernelTree& tree) {
  std::string cpuinfo;
  for (int core = 0; core < 6; ++core) {
    cpuinfo += "processor\t: " + std::to_string(core) +
               "\nBogoMIPS\t: 38.40\nFeatures\t: fp asimd evtstrm aes atomics fphp asimdhp "
               "asimddp\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU "
               "part\t: " +
               (core < 4 ? "0xd05" : "0xd0b") + "\nCPU revision\t: 0\n\n";
    tree.put(cpu(core, "cpu_capacity"), core < 4 ? "381" : "1024");
    tree.put(cpu(core, "cpufreq/cpuinfo_min_freq"), core < 4 ? "300000" : "710400");
    tree.put(cpu(core, "cpufreq/cpuinfo_max_freq"), core < 4 ? "1785600" : "2419200");
  }
  tree.put("proc/cpuinfo", cpuinfo + "Hardware\t: Qualcomm Technologies, Inc SM6150");
  tree.put("proc/meminfo", "MemTotal:        5828532 kB");
  tree.put("sys/devices/system/cpu/online", "0-5");
}

TEST(Hardware, ReadsAnX86Laptop) {
  const KernelTree tree;
  put_laptop(tree);
  const auto hardware = read_hardware({.root = tree.root(), .architecture = "x86_64"});
  ASSERT_TRUE(hardware) << hardware.error().message;
  EXPECT_EQ(hardware->architecture, "x86_64");
  EXPECT_EQ(hardware->cpu_model, "Intel(R) Core(TM) i7-1165G7");
  EXPECT_THAT(hardware->cores, ElementsAre(0, 1));
  EXPECT_EQ(hardware->memory_bytes, 16167328LL * 1024);
  EXPECT_EQ(hardware->kernel, "6.1.0-18-amd64");
  EXPECT_FALSE(hardware->hypervisor);
  EXPECT_THAT(hardware->instruction_sets, ElementsAre("avx", "avx2", "avx512_vnni", "avx512f",
                                                      "f16c", "fma", "sse4_1", "sse4_2"));
  ASSERT_EQ(hardware->clusters.size(), 1u);
  EXPECT_EQ(hardware->clusters[0].max_frequency_khz, 4'700'000);
  ASSERT_EQ(hardware->caches.size(), 7u);
  const auto& last = hardware->caches.back();
  EXPECT_EQ(last.level, 3);
  EXPECT_EQ(last.bytes, 12 << 20);
  EXPECT_EQ(last.line_bytes, 64);
  EXPECT_THAT(last.cores, ElementsAre(0, 1));
}

TEST(Hardware, ReadsAPhoneWithTwoKindsOfCores) {
  const KernelTree tree;
  put_phone(tree);
  const auto hardware = read_hardware({.root = tree.root(), .architecture = "aarch64"});
  ASSERT_TRUE(hardware) << hardware.error().message;
  EXPECT_EQ(hardware->cpu_model, "Cortex-A55 + Cortex-A76");
  EXPECT_THAT(hardware->instruction_sets,
              ElementsAre("asimd", "asimddp", "asimdhp", "atomics", "fphp"));
  ASSERT_EQ(hardware->clusters.size(), 2u);
  EXPECT_THAT(hardware->clusters[0].cores, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(hardware->clusters[0].capacity, 381);
  EXPECT_EQ(hardware->clusters[0].min_frequency_khz, 300'000);
  EXPECT_THAT(hardware->clusters[1].cores, ElementsAre(4, 5));
  EXPECT_EQ(hardware->clusters[1].max_frequency_khz, 2'419'200);
  EXPECT_TRUE(hardware->caches.empty());
}

TEST(Hardware, NamesUnknownPartsByTheirNumbers) {
  const KernelTree tree;
  tree.put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x51\nCPU part\t: 0x804");
  tree.put("proc/meminfo", "MemTotal: 1000 kB");
  EXPECT_EQ(read_hardware({.root = tree.root()})->cpu_model, "0x51/0x804");
}

TEST(Hardware, KnowsAVirtualMachine) {
  const KernelTree tree;
  tree.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: avx2 hypervisor");
  tree.put("proc/meminfo", "MemTotal: 1000 kB");
  EXPECT_TRUE(read_hardware({.root = tree.root()})->hypervisor);
}

TEST(Hardware, NamesTheFileThatSaysNothing) {
  const KernelTree tree;
  EXPECT_THAT(read_hardware({.root = tree.root()}).error().message, HasSubstr("proc/cpuinfo"));
  tree.put("proc/cpuinfo", "Hardware : none");
  EXPECT_THAT(read_hardware({.root = tree.root()}).error().message,
              HasSubstr("proc/cpuinfo: names no processor"));
  tree.put("proc/cpuinfo", "processor : 0");
  tree.put("proc/meminfo", "MemFree: 5 kB");
  EXPECT_THAT(read_hardware({.root = tree.root()}).error().message,
              HasSubstr("proc/meminfo: has no MemTotal"));
}

TEST(Hardware, IsReadOnThisMachine) {
  const auto hardware = read_hardware();
  ASSERT_TRUE(hardware) << hardware.error().message;
  EXPECT_FALSE(hardware->cores.empty());
  EXPECT_GT(hardware->memory_bytes, 0);
  EXPECT_EQ(to_json(*hardware)["cores"].size(), hardware->cores.size());
}

}  // namespace
}  // namespace fleetfit::measure
