-- Pages of the file, those of them that are free, and their size. Lock: none. Index: none. Differs: PostgreSQL samples job.
select pages.page_count, free.freelist_count, size.page_size
from pragma_page_count as pages, pragma_freelist_count as free, pragma_page_size as size
