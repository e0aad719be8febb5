"""The benchmark: strongroom and its peers, side by side in one run. README.md says what is compared and how."""
