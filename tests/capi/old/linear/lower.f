      SUBROUTINE LOWER(N, L, B, INFO)
      INTEGER N, INFO, I, J, NCALLS
      DOUBLE PRECISION L(N, N), B(N)
      COMMON /COUNTS/ NCALLS
      NCALLS = NCALLS + 1
      INFO = 0
      DO 20 I = 1, N
        IF (L(I, I) .EQ. 0D0) THEN
          INFO = I
          RETURN
        END IF
        DO 10 J = 1, I - 1
          B(I) = B(I) - L(I, J) * B(J)
   10   CONTINUE
        B(I) = B(I) / L(I, I)
   20 CONTINUE
      END
