// Package esphome has the driver of ESPHome nodes, by their native API.
//
// The protocol is that of api.proto in esphome/esphome (API 1.14, ESPHome 2026.x) and of api_frame_helper_noise.cpp
// and api_frame_helper_plaintext.cpp beside it. A node is trusted with nothing: each frame, list and rate is bounded
// before it is decoded, by a decoder of the few fields that are needed.
package esphome
