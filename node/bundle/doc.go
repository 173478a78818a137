// Package bundle is the definition of a hosted agent as one signed file, which its author gives
// to others: data, never a program. It names what it needs (a temperature in Cel, a switch)
// instead of points, and whoever imports it says which points those are.
//
// The file is untrusted: it is bounded before it is decoded, its signature is verified before
// anything of its content is used, and the permission that it asks for is a wish.
package bundle
