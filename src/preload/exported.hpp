#pragma once

/// A function that the program calls; everything else of the preload is hidden.
#define TONARI_EXPORTED extern "C" [[gnu::visibility("default")]]
