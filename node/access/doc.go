// Package access decides who may do what on a site. An owner signs a grant for a key; the
// holder may pass a narrower one on without asking the site; a token stands for a grant for
// clients that know nothing else. The package also keeps the owners, lets the first of them
// claim the site, and decides how far the time of day can be trusted.
//
// Whatever is not granted is refused, and a refusal names what is missing and never what else
// exists. The package knows no devices, protocols, files or networks: its callers pass
// functions that store its files.
package access
