// Package access decides who may do what. An owner signs a grant for a key; its
// holder may pass a narrower one on, without asking the site; a token stands for a
// grant where a client knows nothing else. It also keeps the owners, lets the first
// of them claim the site, and knows how far the time of day can be trusted.
//
// Whatever is not granted is refused, and a refusal names what is missing and never
// what else there is. Devices, protocols, files and networks may not enter: what is
// kept is given to a function that keeps it.
package access
