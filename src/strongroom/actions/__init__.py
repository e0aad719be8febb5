"""Actions: everything an account can do, one file a noun. Each authorises, reads, decides, and returns or refuses."""
