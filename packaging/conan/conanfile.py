# Conan 2. From this tree: conan create packaging/conan --build=missing
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class MagpieConan(ConanFile):
    name = "magpie"
    description = "M:N goroutine runtime for C++20 on Linux"
    license = "MIT"
    topics = ("goroutines", "scheduler", "fibers", "channels", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "tls": [True, False],
        "http": [True, False],
        "dns": [True, False],
    }
    default_options = {"shared": False, "fPIC": True, "tls": True, "http": True, "dns": True}

    @property
    def _tree(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._tree, "include", "magpie", "version.h"))
        numbers = re.findall(r"^#define MAGPIE_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.M)
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "debugger/*", "include/*",
                        "modules/*", "src/*", "tools/rooms.txt", "web/*"):
            copy(self, pattern, self._tree, self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.tls:
            self.requires("openssl/[>=3 <4]")
        if self.options.http:
            self.requires("boost/[>=1.74]", headers=True, libs=False, visible=False)
        if self.options.dns:
            self.requires("c-ares/[>=1.18 <2]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("magpie runs on Linux")
        if self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("magpie runs on x86-64 and AArch64")
        if self.options.http and not self.options.tls:
            raise ConanInvalidConfiguration("http needs tls")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCH", "COMMAND", "ANALYSIS", "VIEW"):
            toolchain.cache_variables[f"MAGPIE_BUILD_{part}"] = False
        for part in ("tls", "http", "dns"):
            wanted = bool(self.options.get_safe(part))
            toolchain.cache_variables[f"MAGPIE_BUILD_{part.upper()}"] = wanted
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        for folder in ("cmake", "pkgconfig"):  # Conan writes its own
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "magpie")
        core = self.cpp_info.components["magpie"]
        core.set_property("cmake_target_name", "magpie::magpie")
        core.set_property("pkg_config_name", "magpie")
        core.libs = ["magpie"]
        core.system_libs = ["pthread"]
        core.cxxflags = ["-fstack-clash-protection"]
        needs = {
            "tls": ["magpie", "openssl::ssl"],
            "http": ["tls"],
            "dns": ["magpie", "c-ares::cares"],
        }
        for part, required in needs.items():
            if self.options.get_safe(part):
                component = self.cpp_info.components[part]
                component.set_property("cmake_target_name", f"magpie::{part}")
                component.set_property("pkg_config_name", f"magpie-{part}")
                component.libs = [f"magpie_{part}"]
                component.requires = required
