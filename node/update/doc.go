// Package update verifies a new version of the program, installs it, and rolls back to the
// version before where it does not prove itself.
//
// An update is one file (file.go): the release, its signatures, the program. A program embeds
// the two keys that it accepts; one signature is enough. One key signs releases; the other is
// kept off line, to sign the release after the first was lost or stolen, which embeds new
// keys. If both were needed, a lost key would leave every board without updates for ever; if
// there were one, a stolen key would.
//
// Programs (programs.go) keeps the versions on a board, installs them and rolls back. One small
// file decides which version runs. It is replaced atomically, so that a loss of power at any
// moment leaves the old version or the new one. The superuser can go back (back.go).
//
// A channel (channel.go) is a signed list of releases, with the address of each update.
//
// The package knows no networks, service managers or command lines.
package update
