# Defines the target device-tests: everything that is built by default except test programs with the label host, which
# tools/test.sh runs in its sanitizer build only.
if(VKNERF_TESTS AND NOT WIN32)
    get_property(host_programs GLOBAL PROPERTY host_programs)
    get_property(needed_programs GLOBAL PROPERTY needed_programs) # also used by other tests
    list(REMOVE_ITEM host_programs ${needed_programs})
    set(needed "")
    foreach(folder . tests tools/make_scene tools/vendors)
        get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
        foreach(target IN LISTS targets)
            get_target_property(kind ${target} TYPE)
            get_target_property(by_request ${target} EXCLUDE_FROM_ALL)
            if(NOT by_request AND NOT kind STREQUAL INTERFACE_LIBRARY AND NOT target IN_LIST host_programs)
                list(APPEND needed ${target})
            endif()
        endforeach()
    endforeach()
    add_custom_target(device-tests DEPENDS ${needed})
endif()
