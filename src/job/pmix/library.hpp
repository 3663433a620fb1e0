#pragma once

#include <pmix.h>

namespace tonari::job::pmix {

/// PMIx's functions, looked up if a launcher with PMIx started this process. The code uses no macro of PMIx's headers
/// that needs other functions; in newer versions some macros are functions.
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
  decltype(&::PMIx_Abort) abort;
};

/// Returns the library. The first call loads it, for the rest of the process. Throws SetupError that names the missing
/// library or function.
const Library& library();

}  // namespace tonari::job::pmix
