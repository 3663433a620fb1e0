#pragma once

/// Marks a function that the program calls; everything else in the preload library is hidden.
#define TONARI_EXPORTED extern "C" [[gnu::visibility("default")]]
