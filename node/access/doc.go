// Package access decides about the permissions of principals on a site. An owner signs a grant for
// a key, whose holder may delegate a narrower one without asking the site. A token stands for a
// grant for clients that support only bearer tokens. The package also keeps the owners, lets the
// first of them claim the site, and decides how far the time of day can be trusted.
//
// Everything that is not granted is refused. A refusal names the missing permission and never other
// things that exist. The package knows no devices, protocols, files or networks: its callers pass
// functions that store its files.
package access
