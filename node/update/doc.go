// Package update verifies a new version of the program, puts it in the place of the
// one before, and takes it away again where it does not prove itself.
//
// An update is one file (file.go): what it is, who says so, the program. A program
// embeds the two keys whose word it takes, and either counts. One signs releases; the
// other is kept off line, to sign the release after the first was lost or stolen, and
// that release has other keys in it. Were both needed, a lost key would leave every
// board for good without updates; were there one, a stolen key would.
//
// Programs (programs.go) is where versions live on a board, how one takes the place of
// another, and how it goes back. Everything there is decided by one small file that is
// replaced whole, so that a cut at any moment leaves the old version or the new one.
//
// Networks, service managers and the command line may not enter.
package update
