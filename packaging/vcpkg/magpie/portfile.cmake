# An overlay port of this tree: vcpkg install magpie --overlay-ports=packaging/vcpkg
# In a registry, vcpkg_from_git would fetch a tag instead.
cmake_path(SET SOURCE_PATH NORMALIZE "${CURRENT_PORT_DIR}/../../..")

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    dns MAGPIE_BUILD_DNS
    http MAGPIE_BUILD_HTTP
    tls MAGPIE_BUILD_TLS
)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DMAGPIE_BUILD_TESTS=OFF
    -DMAGPIE_BUILD_EXAMPLES=OFF
    -DMAGPIE_BUILD_BENCH=OFF
    -DMAGPIE_BUILD_COMMAND=OFF
    -DMAGPIE_BUILD_ANALYSIS=OFF
    -DMAGPIE_BUILD_VIEW=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/magpie)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
