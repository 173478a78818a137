// Package bundle encodes the definition of a hosted agent as one signed file, for use on other
// sites: data, never a program. It names needs (a temperature in Cel, a switch) instead of points;
// the importing owner binds them to points.
//
// The file is untrusted. It is bounded before it is decoded, its signature is verified before its
// content is used, and the permission in it is only a wish.
package bundle
