/* The page, put together by cmake/Page.cmake. */
#ifndef VIEWER_PAGE_H
#define VIEWER_PAGE_H

extern const char viewer_page[], viewer_page_end[];     /* what shows the run */
extern const char viewer_denied[], viewer_denied_end[]; /* for who comes without the token */

#define PAGE_NONCE "@NONCE" /* stands in both where the answer's nonce goes */

#endif
