"""The courier, its lanes and its accounts, on a database in memory and a clock that jumps."""
