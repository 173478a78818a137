// Command init is the image's system: the first process, which keeps the site running as
// systemd does elsewhere, and under other names what it starts. Nothing in it listens.
//
// It knows where a card's partitions are, when a site is well, and how one version of the
// image takes the place of another. What a site does stands elsewhere, and it is only ever
// spoken to by sd_notify(3) and its command line.
package main
