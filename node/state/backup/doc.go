// Package backup writes a site into one sealed file, restores it in another data folder, and
// erases a site from its folder. Except during Create, the site does not run.
//
// It may import node/state, the packages of node that parse the content of a backup, and device
// for the fault of a wrong passphrase.
package backup
