// Package backup writes a site into one sealed file, makes the site of such a file in
// another data folder, and erases a site from its folder. The site does not run meanwhile,
// but for Create.
//
// It may import node/state, the packages of node that read what a backup holds, and device
// for the fault of a wrong passphrase.
package backup
