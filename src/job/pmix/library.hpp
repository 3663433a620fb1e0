#pragma once

#include <pmix.h>

namespace tonari::job::pmix {

/// PMIx's functions, found when a launcher that has PMIx started us. No macro of its headers is used that needs more of
/// the library: newer ones are functions.
struct Library {
  decltype(&::PMIx_Init) init;
  decltype(&::PMIx_Finalize) finalize;
  decltype(&::PMIx_Put) put;
  decltype(&::PMIx_Commit) commit;
  decltype(&::PMIx_Fence_nb) fence_nb;
  decltype(&::PMIx_Get) get;
  decltype(&::PMIx_Register_event_handler) register_event_handler;
  decltype(&::PMIx_Deregister_event_handler) deregister_event_handler;
  decltype(&::PMIx_Error_string) error_string;
};

/// The library, loaded by the first call and for the rest of the process. Throws SetupError that says what is missing.
const Library& library();

}  // namespace tonari::job::pmix
