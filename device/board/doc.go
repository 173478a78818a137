// Package board gives drivers the buses, ports and lines of this board, and keeps two
// users apart. Drivers never open or close a bus themselves.
//
// No bus is held open between two uses, so that an adapter on USB can be unplugged and
// plugged in again at any time.
package board
